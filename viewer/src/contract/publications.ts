/** A published number, as the public view `published` has it; base units. */
export interface PublicationValueRow {
  publication: string;
  cloud: string;
  instance: string | null;
  overlay: string;
  mode: string | null;
  overlay_version: string | null;
  overlay_mtu_bytes: number | null;
  tool: string | null;
  protocol: string | null;
  metric: string;
  statistic: string;
  repetition: number | null;
  value: number;
  unit: string;
  parameters: string | null;
  note: string | null;
}

/** What is wrong with published numbers; a column that is null means all. */
export interface PublicationFlawRow {
  publication: string;
  cloud: string | null;
  instance: string | null;
  overlay: string | null;
  mode: string | null;
  protocol: string | null;
  metric: string | null;
  flaw: string;
}

export interface PublicationPrecisionRow {
  publication: string;
  tool: string;
  protocol: string;
  metric: string;
  printed_unit: string;
  digits: number;
  why: string;
}

declare module "./queries" {
  interface Queries {
    publication_values: { parameters: Record<string, never>; row: PublicationValueRow };
    publication_flaws: { parameters: Record<string, never>; row: PublicationFlawRow };
    publication_precision: { parameters: Record<string, never>; row: PublicationPrecisionRow };
  }
}
