/** Tiers: whether the nodes were what their profile declares, and whether the lab gives what was published for the tier. */
import { CheckPart } from "./tiers/checks";
import { PublishedPart } from "./tiers/published";

export const Tiers = () => (
  <>
    <h2>Measured against declared</h2>
    <CheckPart />
    <h2 class="next">Published against measured</h2>
    <PublishedPart />
  </>
);
