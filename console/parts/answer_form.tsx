import { useState } from "preact/hooks";
import { api, load, type Schemas } from "../live/api.ts";
import { hasScope } from "../live/session.ts";
import { attempt } from "./toast.tsx";

export function AnswerForm({ question: { id, options } }: { question: Schemas["Question"] }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  if (!hasScope("write:questions")) return null;
  async function submit(answer: string): Promise<void> {
    if (busy || answer.trim() === "") return;
    setBusy(true);
    const params = { path: { id } };
    const send = () => load(api.POST("/api/questions/{id}/answer", { params, body: { answer } }));
    if (await attempt(send, "Answer sent")) setText("");
    setBusy(false);
  }
  return (
    <form class="answer" onSubmit={(event) => (event.preventDefault(), void submit(text))}>
      {options.map((option) => (
        <button
          key={option}
          type="button"
          disabled={busy}
          onClick={() => void submit(option)}
        >
          {option}
        </button>
      ))}
      <span class="answer-words">
        <input
          aria-label="Your answer"
          placeholder={options.length === 0 ? "Your answer" : "Another answer"}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" disabled={busy || text.trim() === ""}>Answer</button>
      </span>
    </form>
  );
}
