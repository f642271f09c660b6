import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import type { Refusal } from "../live/api.ts";

interface FieldProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: string;
  /** Name of the field in the API, to show what it was refused for. */
  name?: string;
  refusal?: Refusal | null;
  required?: boolean;
  rows?: number;
  placeholder?: string;
  type?: "text" | "password" | "datetime-local";
  autocomplete?: string;
  autofocus?: boolean;
}

/** A text field with its label, a hint, and what was wrong with it. */
export function TextField(props: FieldProps) {
  const { label, value, onInput, hint, name = "", refusal, rows } = props;
  const id = useId();
  const wrong = refusal?.errors.find(({ path }) => path === name || path.startsWith(`${name}.`));
  const described = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ");
  const shared = {
    id,
    value,
    required: props.required ?? false,
    placeholder: props.placeholder ?? "",
    "aria-invalid": wrong !== undefined,
    ...(described === "" ? {} : { "aria-describedby": described }),
    ...(props.autocomplete === undefined ? {} : { autocomplete: props.autocomplete }),
    autofocus: props.autofocus ?? false,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows !== undefined
        ? <textarea rows={rows} {...shared} />
        : props.type === "password"
        ? <input type="password" {...shared} />
        : props.type === "datetime-local"
        ? <input type="datetime-local" {...shared} />
        : <input {...shared} />}
      {hint !== undefined && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      {wrong !== undefined && <p class="wrong" id={`${id}-wrong`}>{label} {wrong.message}</p>}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: readonly (readonly [value: string, words: string])[];
  hint?: string;
  /** The label is read out, and not seen. */
  bare?: boolean;
}

/** One of several. */
export function Choice({ label, value, onChange, options, hint, bare = false }: ChoiceProps) {
  const id = useId();
  return (
    <div class={bare ? "choice" : "field"}>
      <label for={id} class={bare ? "unseen" : ""}>{label}</label>
      <select
        id={id}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        {...(hint === undefined ? {} : { "aria-describedby": `${id}-hint` })}
      >
        {options.map(([one, words]) => <option key={one} value={one}>{words}</option>)}
      </select>
      {hint !== undefined && <p class="hint" id={`${id}-hint`}>{hint}</p>}
    </div>
  );
}

/** Yes or no. */
export function Tick({ label, checked, onChange, children }: {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  children?: ComponentChildren;
}) {
  return (
    <label class="tick">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}{children}</span>
    </label>
  );
}

/** The words of a field that takes many: there are spaces, line breaks or commas between them. */
export function wordsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
