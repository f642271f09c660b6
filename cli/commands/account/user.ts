import { ROLES } from "../../../src/domain/call/vocabulary.ts";
import { toColumns } from "../../terminal/column.ts";
import { readLines, readNewPassword, SecretPrompt } from "../../terminal/prompt.ts";
import { type AnyCommand, type BaseContext, option } from "../command.ts";
import { deleteByName, pageOptions, resource } from "../resource.ts";

const user = resource("user", { arg: "id|name", ref: "user", example: "eve" });

const ROLE = option.text("--role <role>", "role of the user", { choices: ROLES });

export const group: AnyCommand[] = [
  user.list("List users, newest first", "GET /api/users", {
    options: { role: { ...ROLE, about: "filter by role" }, ...pageOptions(100) },
    examples: ["user list", "user list --role admin"],
    columns: toColumns("id name role disabled origin last_login_at"),
  }),
  user.get("GET /api/users/:id_or_name", { examples: ["user get ada"] }),
  user.create("Create a user. Without a password, one is generated and shown once", "POST /api/users", {
    options: {
      name: option.text("-n, --name <name>", "unique login name", { required: true }),
      role: { ...ROLE, required: true },
      passwordStdin: option.flag("--password-stdin", "read the password from the first line of stdin"),
    },
    examples: [
      "user create --name ada --role operator",
      "user create -n eve --role viewer --password-stdin < password",
    ],
    input: async ({ name, role, passwordStdin }, { io }) => ({
      name,
      role,
      ...(passwordStdin ? { password: (await readLines(io))[0] ?? "" } : {}),
    }),
  }),
  user.verb("update", "Rename a user or change the role", "PUT /api/users/:id_or_name", {
    options: { name: option.text("-n, --name <name>", "new name"), role: ROLE },
    examples: ["user update ada --role viewer"],
  }),
  user.verb("disable", "Disable a user, end all logins and delete all tokens", "PUT /api/users/:id_or_name", {
    input: () => ({ disabled: true }),
  }),
  user.verb("enable", "Enable a disabled user", "PUT /api/users/:id_or_name", {
    input: () => ({ disabled: false }),
  }),
  user.verb(
    "password",
    "Change a user's password and end that user's logins",
    "PUT /api/users/:id_or_name/password",
    {
      options: {
        stdin: option.flag("--stdin", "read the new password, then your current one, as lines from stdin"),
      },
      examples: ["user password ada", "user password ada --stdin < new-password"],
      async input({ stdin }, context) {
        const [password = "", current] = stdin ? await readLines(context.io) : await askPasswords(context);
        return { password, ...(current ? { current_password: current } : {}) };
      },
    },
  ),
  deleteByName("Delete a user with all logins and tokens", "user", {
    example: "eve",
    loss: "All logins and tokens of this user stop working.",
  }),
];

async function askPasswords({ client, io, args: [who] }: BaseContext): Promise<string[]> {
  const prompt = new SecretPrompt(io);
  const { value: me } = await client.call("GET /api/auth/whoami");
  const isOwn = me.by === "login" && (me.name === who || me.user_id === who);
  const current = isOwn ? await prompt.ask("Current password") : "";
  return [await readNewPassword(prompt), current];
}
