import { useLocation } from "wouter-preact";
import { api, load, type Schemas } from "../../live/api.ts";
import { listWorkerOptions } from "../../live/workers.ts";
import { FormDialog, useForm } from "../../parts/form.tsx";

interface FormProps {
  session: Schemas["LocalSession"];
  onClose: () => void;
}

export function ConversationForm({ session, onClose }: FormProps) {
  const [, navigate] = useLocation();
  const params = { path: { id: session.id } };
  const form = useForm({
    initial: { name: session.name, worker_id: session.worker_id ?? "" },
    async send(body) {
      await load(api.PUT("/api/local/sessions/{id}", { params, body }));
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title="Conversation"
      action="Save"
      onClose={onClose}
      narrow
      fields={[
        { name: "name", label: "Name", required: true },
        {
          name: "worker_id",
          label: "Worker",
          hint: "Receives messages that mention no worker",
          options: listWorkerOptions(["", "Chosen by the coordinator"]),
        },
      ]}
      remove={{
        question: {
          title: `Delete “${session.name}”?`,
          text: "All its messages and files are deleted, its tasks are cancelled, and workers forget it.",
          action: "Delete conversation",
        },
        run: () => load(api.DELETE("/api/local/sessions/{id}", { params })),
        after: () => navigate("/console/chat"),
      }}
    />
  );
}
