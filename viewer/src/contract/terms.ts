/** Written from provision/src/overlaylab by `./task test:unit -- -k viewer_terms --update-golden`: change it there. */

/** How the nodes' CPUs ran, as somebody would say it. */
export const ACCELERATORS = {
  kvm: "virtual machines with hardware support",
  tcg: "virtual machines on emulated CPUs: ratios near the CPU's limit tell about the emulation",
  "shared-kernel": "system containers on the machine's own kernel",
  bare: "the machines themselves",
} as const;

/** Units whose ratio to the host means something; a count or a loss may be zero on the host. */
export const COMPARED_UNITS: readonly string[] = ["bit/s", "s", "1/s"];

export const GOODPUT = "goodput";
/** What the names of all latencies begin with. */
export const LATENCY = "latency";

/** Metrics with their units. */
export const METRICS = {
  goodput: { unit: "bit/s" },
  transaction_rate: { unit: "1/s" },
  latency_one_way: { unit: "s" },
  latency_rtt: { unit: "s" },
  latency_transaction: { unit: "s" },
  jitter: { unit: "s" },
  loss: { unit: "ratio" },
  reordered: { unit: "1" },
  duplicates: { unit: "1" },
  offered: { unit: "bit/s" },
  datagrams: { unit: "1" },
  retransmits: { unit: "1" },
  cpu_client: { unit: "ratio" },
  cpu_server: { unit: "ratio" },
  cpu_per_gigabyte: { unit: "s" },
  cpu_per_transaction: { unit: "s" },
  machine_cpu_per_gigabyte: { unit: "s" },
  machine_cpu_per_transaction: { unit: "s" },
  packet_rate: { unit: "1/s" },
  steal: { unit: "ratio" },
} as const;

/** What a drill's prober measures of the service in each of its cycles. */
export const MEASURES = {
  answered: { unit: "ratio", better: "higher" },
  rtt: { unit: "s", better: "lower" },
  connected: { unit: "ratio", better: "higher" },
  connect: { unit: "s", better: "lower" },
  page: { unit: "ratio", better: "higher" },
  fetched: { unit: "ratio", better: "higher" },
  goodput: { unit: "bit/s", better: "higher" },
  resolved: { unit: "ratio", better: "higher" },
  resolve: { unit: "s", better: "lower" },
} as const;

/** Tools that measure a latency: whether they ask again only once they were answered. */
export const LOOPS = {
  connect: "closed",
  netperf: "closed",
  ping: "open",
  qperf: "closed",
  sockperf: "open",
} as const;
