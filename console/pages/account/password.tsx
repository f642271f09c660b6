import { api, load, type Schemas } from "../../live/api.ts";
import { signIn } from "../../live/session.ts";
import { Fields, Form, useForm } from "../../parts/form.tsx";
import { showToast } from "../../parts/toast.tsx";

type Values = { current_password: string; new_password: string; password: string };

/** Changes the user's own password. All other sessions end, and this browser signs in again. */
export function PasswordForm({ user: { id, name, origin } }: { user: Schemas["User"] }) {
  // The API changes the password of the operator by another route.
  const operator = origin === "operator";
  const form = useForm<Values>({
    initial: { current_password: "", new_password: "", password: "" },
    async send({ current_password, new_password, password }) {
      if (operator) await load(api.PUT("/api/system/password", { body: { current_password, new_password } }));
      else {
        const params = { path: { id_or_name: id } };
        await load(
          api.PUT("/api/users/{id_or_name}/password", { params, body: { current_password, password } }),
        );
      }
      await signIn(name, operator ? new_password : password);
      showToast("Password changed");
      form.set({ current_password: "", new_password: "", password: "" });
    },
  });
  return (
    <Form form={form} action="Change password">
      {/* Password managers read the account name here. */}
      <input type="text" autocomplete="username" value={name} readOnly hidden />
      <Fields
        form={form}
        fields={[
          {
            name: "current_password",
            label: "Current password",
            type: "password",
            autocomplete: "current-password",
            required: true,
          },
          {
            name: operator ? "new_password" : "password",
            label: "New password",
            type: "password",
            autocomplete: "new-password",
            hint: "At least 10 characters. Your other sessions end",
            required: true,
          },
        ]}
      />
    </Form>
  );
}
