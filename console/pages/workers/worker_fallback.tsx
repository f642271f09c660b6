import { useGet } from "../../live/resource.ts";
import { Checkbox } from "../../parts/field.tsx";
import type { FormState } from "../../parts/form.tsx";

/** Lets other engines replace the worker's. Hidden while the configuration names none. */
export function FallbackField({ form }: { form: FormState<Record<string, string>> }) {
  const engines = useGet("/api/engines", {}).data ?? [];
  const { engine = "", fallback = "" } = form.values;
  const own = engines.find((one) => engine === "" ? one.default : one.name === engine);
  const names = own?.fallback ?? [];
  if (names.length === 0 && fallback === "") return null;
  return (
    <fieldset>
      <legend>Fallback</legend>
      <Checkbox
        label="Use another engine when it is out"
        checked={fallback === "on"}
        onChange={(on) => form.set({ fallback: on ? "on" : "" })}
      />
      <p class="hint">
        While {own?.name ?? "its engine"} is rate limited or cannot be used: {names.join(", ") || "none"}
      </p>
    </fieldset>
  );
}
