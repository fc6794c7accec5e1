/** Tiers: whether the nodes were what their profile declares, and whether the lab gives what was published for the tier. */
import { CheckPart } from "./checks";
import { PublishedPart } from "./published";

export const View = () => (
  <>
    <h2>Measured against declared</h2>
    <CheckPart />
    <h2 class="next">Published against measured</h2>
    <PublishedPart />
  </>
);
