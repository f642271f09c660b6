import { useState } from "preact/hooks";
import { api, load, type Schemas } from "../../live/api.ts";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { showToast } from "../../parts/toast.tsx";

/** Pairs a new sender by their code, after showing who they are. */
export function PairingForm({ onClose }: { onClose: () => void }) {
  const [found, setFound] = useState<Schemas["PlatformPairing"] | null>(null);
  const form = useForm({
    initial: { code: "" },
    async send({ code }) {
      const body = found === null ? { code } : { code, sender: found.sender };
      const pairing = await load(api.POST("/api/platforms/pair", { body }));
      if (!pairing.paired) return setFound(pairing);
      showToast(`${pairing.name || pairing.sender} paired`);
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title="Pair a sender"
      action={found === null ? "Look up code" : "Confirm pairing"}
      onClose={onClose}
      fields={[
        found === null && {
          name: "code",
          label: "Code",
          placeholder: "K7PX-2MRD",
          hint: "Sent in reply to a new user's first message. Valid for one hour.",
          required: true,
          autofocus: true,
        },
      ]}
    >
      {found !== null && (
        <>
          <p>
            The code belongs to <strong>{found.name || "a user without a name"}</strong> on{" "}
            {found.platform}, id <code>{found.sender}</code>.
          </p>
          <p class="hint">Users choose their names freely. Check the id.</p>
        </>
      )}
    </FormDialog>
  );
}
