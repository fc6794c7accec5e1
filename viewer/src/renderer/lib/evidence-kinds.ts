/** What each kind of evidence proves. */
export const EVIDENCE: Record<string, string> = {
  status: "the overlay's own word",
  wire: "capture on the underlay",
  path: "what carries packets to the peer",
  mtu: "pings that must not be fragmented",
  health: "daemons that lived through the trial",
  accounting: "bytes sent by one node against those counted at the other",
  settings: "the profile, read back",
};
