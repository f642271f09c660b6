import { Checkbox, splitWords } from "../../parts/field.tsx";
import type { FormState } from "../../parts/form.tsx";

interface GatewayFieldsProps {
  form: FormState<Record<string, string>>;
  /** The gateways of the configuration. */
  names: readonly string[];
}

/** Chooses the gateways of a worker. A chosen gateway that the configuration no longer names can only be removed. */
export function GatewayFields({ form, names }: GatewayFieldsProps) {
  const chosen = splitWords(form.values.gateways ?? "");
  const shown = [...new Set([...names, ...chosen])];
  if (shown.length === 0) return null;
  const change = (name: string, on: boolean) => {
    const others = chosen.filter((one) => one !== name);
    form.set({ gateways: (on ? [...others, name] : others).join(" ") });
  };
  return (
    <fieldset>
      <legend>Gateways</legend>
      <p class="hint">Each adds the key of an API to the worker's requests, which the worker never sees</p>
      {shown.map((name) => (
        <div key={name}>
          <Checkbox
            label={names.includes(name) ? name : `${name} (not in the configuration)`}
            checked={chosen.includes(name)}
            onChange={(on) => change(name, on)}
          />
        </div>
      ))}
    </fieldset>
  );
}
