/** Why a run was ended before it was done; a budget says its words behind it (contract 18). */
export type Interruption = "cancelled" | "shutdown" | "late" | "lost" | `budget: ${string}`;

const INTERRUPTION = /^(cancelled|shutdown|late|lost|budget: .*)$/s;

/** Whether a word that came over the network is one of them. */
export function isInterruption(word: string): word is Interruption {
  return INTERRUPTION.test(word);
}
