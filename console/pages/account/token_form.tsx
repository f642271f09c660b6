import { useState } from "preact/hooks";
import { RESOURCES } from "../../../src/domain/vocabulary.ts";
import { api, ask } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { may } from "../../live/session.ts";
import { Choice, TextField, wordsIn } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";

const DAY_MS = 24 * 3_600_000;
const LIVES = [["7", "a week"], ["30", "30 days"], ["90", "90 days"], ["365", "a year"], [
  "",
  "never",
]] as const;

interface FormProps {
  onClose: (made?: { name: string; token: string }) => void;
}

/** A new token: its name, what it may, and for how long. */
export function TokenForm({ onClose }: FormProps) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState("");
  const [days, setDays] = useState("90");
  const mine = RESOURCES.flatMap((resource) => [`read:${resource}`, `write:${resource}`]).filter(may);
  const sent = useSend(async () => {
    const ends = days === "" ? null : secondNow.value + Number(days) * DAY_MS;
    const body = { name, scopes: wordsIn(scopes), expires_at: ends };
    const made = await ask(api.POST("/api/tokens", { body }));
    onClose({ name: made.name, token: made.token });
  });
  const { refusal } = sent;
  return (
    <DialogForm title="New token" action="Make the token" sent={sent} onClose={() => onClose()}>
      <TextField
        label="Name"
        name="name"
        value={name}
        onInput={setName}
        refusal={refusal}
        required
        autofocus
      />
      <TextField
        label="What it may"
        name="scopes"
        value={scopes}
        onInput={setScopes}
        refusal={refusal}
        placeholder="read:tasks write:tasks"
        required
      />
      <details>
        <summary>What there is</summary>
        <p class="hint">{mine.join(" ")}</p>
      </details>
      <Choice label="It ends after" value={days} onChange={setDays} options={LIVES} />
    </DialogForm>
  );
}
