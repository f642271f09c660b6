/** An option of a question as a button (contract 10, contract 12). */
export interface Choice {
  /** What the platform gives back when it is pressed: at most 64 bytes. */
  value: string;
  label: string;
}

/** Which option of which question. */
interface Chosen {
  questionId: string;
  /** From 0. */
  option: number;
}

/** The buttons of a question. */
export function choicesOf(questionId: string, options: readonly string[]): Choice[] {
  return options.map((label, option) => ({ value: `q:${questionId}:${option}`, label }));
}

/** What a button of ours says, or null for anything else. */
export function readChoice(value: string): Chosen | null {
  const [, questionId, option] = /^q:([0-9a-f-]{36}):(\d{1,2})$/.exec(value) ?? [];
  return questionId === undefined ? null : { questionId, option: Number(option) };
}
