/** An option of a question as a button. */
export interface Choice {
  /** The platform returns this value when a user clicks the button. At most 64 bytes. */
  value: string;
  label: string;
}

interface ChosenOption {
  questionId: string;
  /** Counted from 0. */
  option: number;
}

export function buildChoices(questionId: string, options: readonly string[]): Choice[] {
  return options.map((label, option) => ({ value: `q:${questionId}:${option}`, label }));
}

/** Parses the value of a button. Returns null for other values. */
export function readChoice(value: string): ChosenOption | null {
  const [, questionId, option] = /^q:([0-9a-f-]{36}):(\d{1,2})$/.exec(value) ?? [];
  return questionId === undefined ? null : { questionId, option: Number(option) };
}
