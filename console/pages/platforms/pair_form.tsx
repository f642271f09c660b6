import { useState } from "preact/hooks";
import { api, ask, type Refusal, refusalOf, type Schemas } from "../../live/api.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { TextField } from "../../parts/field.tsx";
import { RefusalNotice } from "../../parts/notice.tsx";
import { say } from "../../parts/toast.tsx";

type Pairing = Schemas["PlatformPairing"];

/** Lets a stranger in by the code that they were given, after showing whose it is (contract 10). */
export function PairForm({ onClose }: { onClose: () => void }) {
  const [code, setCode] = useState("");
  const [found, setFound] = useState<Pairing | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  async function next(event: Event): Promise<void> {
    event.preventDefault();
    setRefusal(null);
    try {
      const body = found === null ? { code } : { code, sender: found.sender };
      const pairing = await ask(api.POST("/api/platforms/pair", { body }));
      if (!pairing.paired) return setFound(pairing);
      say(`${pairing.name || pairing.sender} may speak`);
      onClose();
    } catch (error) {
      setRefusal(refusalOf(error));
    }
  }
  return (
    <Dialog title="Let somebody in" onClose={onClose} wide>
      <form class="form" onSubmit={next}>
        <RefusalNotice refusal={refusal} />
        {found === null
          ? (
            <TextField
              label="Code"
              name="code"
              value={code}
              onInput={setCode}
              refusal={refusal}
              placeholder="K7PX-2MRD"
              hint="Whoever writes for the first time is answered with it; it counts for an hour"
              required
              autofocus
            />
          )
          : (
            <>
              <p>
                This code was given to <strong>{found.name || "somebody without a name"}</strong> on{" "}
                {found.platform}, whose id is <code>{found.sender}</code>.
              </p>
              <p class="hint">Anybody can choose any name: the id is what tells them apart.</p>
            </>
          )}
        <div class="actions end">
          <button type="button" onClick={onClose}>Leave it</button>
          <button type="submit" class="primary">{found === null ? "Whose is it?" : "Let them in"}</button>
        </div>
      </form>
    </Dialog>
  );
}
