/** The page of each view: generate.mts finds them by their folder. */
import type { FunctionComponent } from "preact";
import type { ViewId } from "../../contract/views";
import { PAGES as FOUND } from "../../generated/pages";

/** A folder that the side bar does not name. */
type Unnamed = Exclude<keyof typeof FOUND, ViewId>;

// Does not compile where a view has no folder, or a folder no view.
export const PAGES: Record<ViewId, FunctionComponent> = FOUND satisfies Partial<Record<Unnamed, never>>;
