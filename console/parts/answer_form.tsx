import { useState } from "preact/hooks";
import { api, ask, type Question } from "../live/api.ts";
import { may } from "../live/session.ts";
import { attempt } from "./toast.tsx";

/** What an open question is answered with: its options, and a line for other words. */
export function AnswerForm({ question }: { question: Question }) {
  const { id, options } = question;
  const [words, setWords] = useState("");
  const [busy, setBusy] = useState(false);
  if (!may("write:questions")) return null;
  async function give(answer: string): Promise<void> {
    if (busy || answer.trim() === "") return;
    setBusy(true);
    const call = () =>
      ask(api.POST("/api/questions/{id}/answer", { params: { path: { id } }, body: { answer } }));
    if (await attempt(call, "Answered.")) setWords("");
    setBusy(false);
  }
  return (
    <form class="answer" onSubmit={(event) => (event.preventDefault(), void give(words))}>
      {options.map((option) => (
        <button
          key={option}
          type="button"
          disabled={busy}
          onClick={() => void give(option)}
        >
          {option}
        </button>
      ))}
      <span class="answer-words">
        <input
          aria-label="Your answer"
          placeholder={options.length === 0 ? "Your answer" : "Another answer"}
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        <button type="submit" disabled={busy || words.trim() === ""}>Answer</button>
      </span>
    </form>
  );
}
