import { api, load } from "../../live/api.ts";
import { splitWords } from "../../parts/field.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";

/** Adds a runner. */
export function RunnerForm({ onClose }: { onClose: (created?: { name: string; token: string }) => void }) {
  const form = useForm({
    initial: { name: "", labels: "", allow_admin: false },
    async send({ name, labels, allow_admin }) {
      onClose(
        await load(api.POST("/api/runners", { body: { name, labels: splitWords(labels), allow_admin } })),
      );
    },
  });
  return (
    <FormDialog
      form={form}
      title="Add runner"
      action="Create token"
      onClose={() => onClose()}
      fields={[
        {
          name: "name",
          label: "Name",
          placeholder: "mac1",
          hint: "One name per machine",
          required: true,
          autofocus: true,
        },
        {
          name: "labels",
          label: "Labels",
          placeholder: "macos gpu",
          hint: "A worker runs on a runner that has all labels of the worker",
        },
        {
          name: "allow_admin",
          label: "Run workers with all scopes (*:*)",
          type: "checkbox",
          hint: "Gives the owner of the machine full access to this service",
        },
      ]}
    />
  );
}
