/** Between which endpoints: as a key, and in words. */
import type { Ends } from "../../contract/columns";
import type { Dimension } from "./narrow";
import { clean } from "./text";

export const endsKey = ({ placement, client_node, server_node, direction }: Ends): string =>
  JSON.stringify([placement, client_node, server_node, direction]);

/** Data goes from left to right. */
export function endsWords(key: string, zones: ReadonlyMap<string, string>): string {
  const [placement, client, server, direction] = JSON.parse(key) as [
    Ends["placement"],
    string,
    string,
    Ends["direction"],
  ];
  if (placement === "local") return `local: within ${clean(client, 40)}`;
  const [from, to] = direction === "server-to-client" ? [server, client] : [client, server];
  const [fromZone, toZone] = [zones.get(from), zones.get(to)];
  const zoned =
    fromZone !== undefined && toZone !== undefined && fromZone !== toZone
      ? `, ${clean(fromZone, 30)} → ${clean(toZone, 30)}`
      : "";
  return `remote: ${clean(from, 40)} → ${clean(to, 40)}${zoned}`;
}

export const endsDimension = (zones: ReadonlyMap<string, string>): Dimension<Ends> => ({
  name: "ends",
  title: "Between",
  of: endsKey,
  label: (key) => endsWords(key, zones),
  // Remote first: what overlays are for.
  order: (a, b) =>
    endsWords(b, zones).slice(0, 5).localeCompare(endsWords(a, zones).slice(0, 5)) ||
    endsWords(a, zones).localeCompare(endsWords(b, zones), "en", { numeric: true }),
});
