import { useState } from "preact/hooks";
import { RESOURCES } from "../../../src/domain/vocabulary.ts";
import { api, ask, type Refusal, refusalOf } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { may } from "../../live/session.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { Choice, TextField } from "../../parts/field.tsx";
import { RefusalNotice } from "../../parts/notice.tsx";

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
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const mine = RESOURCES.flatMap((resource) => [`read:${resource}`, `write:${resource}`]).filter(may);
  async function save(event: Event): Promise<void> {
    event.preventDefault();
    setRefusal(null);
    try {
      const ends = days === "" ? null : secondNow.value + Number(days) * DAY_MS;
      const body = { name, scopes: scopes.split(/[\s,]+/).filter(Boolean), expires_at: ends };
      const made = await ask(api.POST("/api/tokens", { body }));
      onClose({ name: made.name, token: made.token });
    } catch (error) {
      setRefusal(refusalOf(error));
    }
  }
  return (
    <Dialog title="New token" onClose={() => onClose()} wide>
      <form class="form" onSubmit={save}>
        <RefusalNotice refusal={refusal} />
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
        <div class="actions end">
          <button type="button" onClick={() => onClose()}>Leave it</button>
          <button type="submit" class="primary">Make the token</button>
        </div>
      </form>
    </Dialog>
  );
}
