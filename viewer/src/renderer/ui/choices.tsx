import type { Choice } from "../lib/narrow";

/** Selects for the choices that leave any. */
export function Choices({
  choices,
  onChoose,
}: {
  choices: readonly Choice[];
  onChoose: (name: string, key: string) => void;
}) {
  return (
    <>
      {choices
        .filter(({ options }) => options.length > 1)
        .map(({ name, title, options, chosen }) => (
          <label key={name}>
            {title}{" "}
            <select value={chosen} onChange={(event) => onChoose(name, event.currentTarget.value)}>
              {options.map(({ key, label }) => (
                <option value={key} key={key}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        ))}
    </>
  );
}
