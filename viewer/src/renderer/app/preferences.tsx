/** Units and theme, for all views. */
import { RATE_UNITS, THEMES, TIME_UNITS } from "../../contract/settings";
import { change, settings } from "../state/state";

export function Preferences() {
  const { theme, rateUnit, timeUnit } = settings.value;
  return (
    <span class="preferences">
      <Choice
        label="Rates in"
        value={rateUnit}
        of={RATE_UNITS}
        onChange={(chosen) => void change({ rateUnit: chosen })}
      />
      <Choice
        label="Times in"
        value={timeUnit}
        of={TIME_UNITS}
        onChange={(chosen) => void change({ timeUnit: chosen })}
      />
      <Choice label="Theme" value={theme} of={THEMES} onChange={(chosen) => void change({ theme: chosen })} />
    </span>
  );
}

function Choice<Value extends string>({
  label,
  value,
  of,
  onChange,
}: {
  label: string;
  value: Value;
  of: readonly Value[];
  onChange: (chosen: Value) => void;
}) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as Value)}>
        {of.map((each) => (
          <option value={each}>{each}</option>
        ))}
      </select>
    </label>
  );
}
