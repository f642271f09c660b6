import { workers } from "../live/workers.ts";
import { Choice } from "./field.tsx";

interface WorkerChoiceProps {
  value: string;
  onChange: (id: string) => void;
  /** What it is called when no worker is chosen. */
  all?: string;
  /** How a worker is called. */
  words?: (name: string) => string;
}

/** A filter by worker. */
export function WorkerChoice({ value, onChange, all = "Every worker", words }: WorkerChoiceProps) {
  return (
    <Choice
      bare
      label="Worker"
      value={value}
      onChange={onChange}
      options={[
        ["", all],
        ...(workers.value ?? []).map(({ id, name }) => [id, words?.(name) ?? name] as const),
      ]}
    />
  );
}
