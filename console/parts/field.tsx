import { useId } from "preact/hooks";
import type { ApiError } from "../live/api_error.ts";

export type Options = readonly (readonly [value: string, text: string])[];

/** A field of a form, as data. `name` is its name in the API. */
export interface Field<Name extends string = string> {
  name: Name;
  label: string;
  hint?: string;
  /** Default: a text line, or a choice if there are options. */
  type?: "password" | "datetime-local" | "checkbox";
  options?: Options;
  /** The height of a text area. */
  rows?: number;
  required?: boolean;
  placeholder?: string;
  autocomplete?: string;
  autofocus?: boolean;
  /** The valid values, in a section that the user can unfold. */
  values?: { title: string; names: readonly string[] };
}

interface FieldViewProps {
  field: Field;
  value: string | boolean;
  set: (value: string | boolean) => void;
  error: ApiError | null;
}

export function FieldView({ field, value, set, error }: FieldViewProps) {
  const { name, label, hint, values } = field;
  const id = useId();
  const wrong = error?.errors.find(({ path }) => path === name || path.startsWith(`${name}.`));
  const described = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ");
  const input = {
    id,
    required: field.required ?? false,
    placeholder: field.placeholder ?? "",
    autofocus: field.autofocus ?? false,
    value: String(value),
    "aria-invalid": wrong !== undefined,
    ...(described === "" ? {} : { "aria-describedby": described }),
    ...(field.autocomplete === undefined ? {} : { autocomplete: field.autocomplete }),
    onInput: (event: { currentTarget: { value: string } }) => set(event.currentTarget.value),
  };
  return (
    <div class="field">
      {field.type === "checkbox" ? <Checkbox label={label} checked={value === true} onChange={set} /> : (
        <>
          <label for={id}>{label}</label>
          <Control field={field} input={input} />
        </>
      )}
      {hint !== undefined && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      {wrong !== undefined && <p class="wrong" id={`${id}-wrong`}>{label} {wrong.message}</p>}
      {values !== undefined && (
        <details>
          <summary>{values.title}</summary>
          <p class="hint">{values.names.join(" ")}</p>
        </details>
      )}
    </div>
  );
}

// JSX accepts the other attributes only with a literal `type`.
function Control(
  { field: { rows, type, options }, input }: { field: Field; input: Record<string, unknown> },
) {
  if (options !== undefined) {
    return (
      <select {...input}>
        {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </select>
    );
  }
  if (rows !== undefined) return <textarea rows={rows} {...input} />;
  if (type === "password") return <input {...input} type="password" />;
  if (type === "datetime-local") return <input {...input} type="datetime-local" />;
  return <input {...input} />;
}

export function Checkbox({ label, checked, onChange }: {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}) {
  return (
    <label class="tick">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

/** Splits the value of a field that takes several words, separated by spaces, line breaks or commas. */
interface SegmentsProps {
  label: string;
  options: Options;
  value: string;
  choose: (value: string) => void;
}

/** A choice among a few views, as buttons next to each other. */
export function Segments({ label, options, value, choose }: SegmentsProps) {
  return (
    <span class="segments" role="group" aria-label={label}>
      {options.map(([name, text]) => (
        <button
          key={name}
          type="button"
          aria-pressed={value === name}
          onClick={() => choose(name)}
        >
          {text}
        </button>
      ))}
    </span>
  );
}

export function splitWords(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

/** Reads a command from a field with one word per line. */
export function parseCommand(text: unknown): { command: string[] } | null {
  const command = String(text).split("\n").map((word) => word.trim()).filter(Boolean);
  return command.length === 0 ? null : { command };
}

export const COMMAND_HINT = "The program and its arguments, one per line. No shell is involved";
