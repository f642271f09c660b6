import { saveAnswer } from "../../live/download.ts";
import { hasScope } from "../../live/session.ts";
import { Fields, Form, useForm } from "../../parts/form.tsx";
import { Empty } from "../../parts/notice.tsx";
import { showToast } from "../../parts/toast.tsx";
import { SystemHead } from "./system_head.tsx";

export function Page() {
  const form = useForm({
    initial: { include_key: false, password: "" },
    async send({ include_key, password }) {
      const body = JSON.stringify(include_key ? { include_key, password } : {});
      const headers = { "content-type": "application/json" };
      form.set({ password: "" });
      await saveAnswer(new Request("/api/system/backup", { method: "POST", headers, body }));
      showToast("Backup saved");
    },
  });
  return (
    <>
      <SystemHead current="/console/system/backup" />
      {!hasScope("write:system")
        ? <Empty title="Only administrators can create backups." />
        : (
          <Form form={form} action={form.busy ? "Creating backup" : "Create backup"} page>
            <p class="lead">
              An archive of the database, uploaded files and logs. To restore it, stop the service and run
              {" "}
              <code>svc restore</code> on its machine.
            </p>
            <Fields
              form={form}
              fields={[
                {
                  name: "include_key",
                  label: "Include the signing key",
                  type: "checkbox",
                  hint: "The key gives full access to this service",
                },
                form.values.include_key && {
                  name: "password",
                  label: "Your password",
                  type: "password",
                  autocomplete: "current-password",
                  required: true,
                },
              ]}
            />
          </Form>
        )}
    </>
  );
}
