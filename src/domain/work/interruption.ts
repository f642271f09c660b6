/** Why a run was interrupted. A budget adds its text (contract 18). */
export type Interruption = "cancelled" | "shutdown" | "late" | "lost" | `budget: ${string}`;

const INTERRUPTION = /^(cancelled|shutdown|late|lost|budget: .*)$/s;

/** Returns whether a text from the network is an Interruption. */
export function isInterruption(word: string): word is Interruption {
  return INTERRUPTION.test(word);
}
