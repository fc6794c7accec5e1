/** A switch between two views of the same, and which overlays are drawn; not shown where there is nothing to choose. */
import { clean } from "../../lib/text";
import { Choice } from "../../ui/choice";
import { ENCRYPTED, type Kept, keep } from "./kept";

export interface Way {
  value: string;
  title: string;
}

export function Switch({
  label,
  choices,
  value,
  onChoose,
}: {
  label: string;
  choices: Way[];
  value: string;
  onChoose: (value: string) => void;
}) {
  if (choices.length < 2) return null;
  return (
    <fieldset class="switch" aria-label={label}>
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => onChoose(choice.value)}
        >
          {choice.title}
        </button>
      ))}
    </fieldset>
  );
}

/** Of one run and of the grid: kept for both. */
export const ScaleSwitch = ({ value }: { value: Kept["scale"] }) => (
  <Switch
    label="Scale"
    value={value}
    onChoose={(scale) => keep({ scale: scale === "ratio" ? "ratio" : "absolute" })}
    choices={[
      { value: "ratio", title: "Ratio to the host" },
      { value: "absolute", title: "Absolute" },
    ]}
  />
);

/** both: whether a choice leaves something either way. */
export const Encrypted = ({ value, both }: { value: Kept["encrypted"]; both: boolean }) => (
  <Choice
    label="Encrypted"
    value={value}
    all="all"
    options={both ? ENCRYPTED : []}
    onChoose={(encrypted) => keep({ encrypted: encrypted as Kept["encrypted"] })}
  />
);

/** Which overlays are drawn: shut until somebody wants fewer. */
export function Overlays({
  names,
  hidden,
  onChange,
}: {
  names: string[];
  hidden: string[];
  onChange: (hidden: string[]) => void;
}) {
  if (names.length < 2) return null;
  const shown = names.filter((name) => !hidden.includes(name));
  const toggle = (name: string): void =>
    onChange(hidden.includes(name) ? hidden.filter((each) => each !== name) : [...hidden, name]);
  return (
    <details class="overlays">
      <summary>Overlays: {shown.length === names.length ? "all" : `${shown.length} of ${names.length}`}</summary>
      <div class="filters">
        {names.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={!hidden.includes(name)} onChange={() => toggle(name)} />{" "}
            <bdi>{clean(name)}</bdi>
          </label>
        ))}
        {shown.length < names.length ? (
          <button type="button" onClick={() => onChange(hidden.filter((name) => !names.includes(name)))}>
            Show all
          </button>
        ) : null}
      </div>
    </details>
  );
}
