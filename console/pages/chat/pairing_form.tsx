import { useState } from "preact/hooks";
import { api, ask, type Schemas } from "../../live/api.ts";
import { TextField } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";
import { say } from "../../parts/toast.tsx";

type Pairing = Schemas["PlatformPairing"];

/** Lets a stranger in by the code that they were given, after showing whose it is (contract 10). */
export function PairForm({ onClose }: { onClose: () => void }) {
  const [code, setCode] = useState("");
  const [found, setFound] = useState<Pairing | null>(null);
  const sent = useSend(async () => {
    const body = found === null ? { code } : { code, sender: found.sender };
    const pairing = await ask(api.POST("/api/platforms/pair", { body }));
    if (!pairing.paired) return setFound(pairing);
    say(`${pairing.name || pairing.sender} may speak`);
    onClose();
  });
  return (
    <DialogForm
      title="Let somebody in"
      action={found === null ? "Whose is it?" : "Let them in"}
      sent={sent}
      onClose={onClose}
    >
      {found === null
        ? (
          <TextField
            label="Code"
            name="code"
            value={code}
            onInput={setCode}
            refusal={sent.refusal}
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
    </DialogForm>
  );
}
