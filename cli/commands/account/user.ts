import { ROLES } from "../../../src/domain/vocabulary.ts";
import { type Column, field, idField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type Context, type OptionSpec, toFields } from "../command.ts";
import { listCommand, pageOptions } from "../list.ts";
import { readLines, SecretPrompt } from "../../terminal/prompt.ts";
import { usageError } from "../../terminal/exit.ts";

const COLUMNS: Column[] = [
  idField(),
  field("name"),
  field("role"),
  field("disabled"),
  field("origin"),
  timeField("last_login_at"),
];

const ROLE = { flags: "--role <role>", about: "what the user may", type: "text", choices: ROLES } as const;
const STDIN = {
  flags: "--password-stdin",
  about: "read the password from the first line of stdin",
  type: "flag",
} as const satisfies OptionSpec;
const WHO = "id|name";

export const userCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List users, newest first",
    options: { role: { ...ROLE, about: "only of this role" }, ...pageOptions(100) },
    examples: ["user list", "user list --role admin"],
    endpoint: "GET /api/users",
    columns: COLUMNS,
  }),
  command({
    name: "get",
    about: "Show a user",
    args: [WHO],
    options: {},
    examples: ["user get ada"],
    async run({ client, out, args: [id_or_name = ""] }) {
      const { json, value } = await client.call("GET /api/users/:id_or_name", { params: { id_or_name } });
      out.object(json, value);
    },
  }),
  command({
    name: "create",
    about: "Create a user; without a password one is made and shown once",
    options: {
      name: {
        flags: "-n, --name <name>",
        about: "the name to log in with; unique",
        type: "text",
        required: true,
      },
      role: { ...ROLE, required: true },
      passwordStdin: STDIN,
    },
    examples: [
      "user create --name ada --role operator",
      "user create -n eve --role viewer --password-stdin < password",
    ],
    async run({ client, out, io, options: { name, role, passwordStdin } }) {
      const password = passwordStdin ? (await readLines(io))[0] ?? "" : undefined;
      const { json, value } = await client.call("POST /api/users", {
        body: { name, role, ...(password === undefined ? {} : { password }) },
      });
      out.object(json, value);
    },
  }),
  command({
    name: "update",
    about: "Rename a user or change the role; it counts within a second",
    args: [WHO],
    options: {
      name: { flags: "-n, --name <name>", about: "another name", type: "text" },
      role: ROLE,
    },
    examples: ["user update ada --role viewer"],
    async run({ client, out, args: [id_or_name = ""], options }) {
      const parts = { params: { id_or_name }, body: toFields(options) };
      const { json, value } = await client.call("PUT /api/users/:id_or_name", parts);
      out.object(json, value);
    },
  }),
  switchCommand("disable", "End a user's logins and tokens until the user is enabled again", true),
  switchCommand("enable", "Let a disabled user in again", false),
  command({
    name: "password",
    about: "Change a user's password; that user's logins end. One's own needs the current one",
    args: [WHO],
    options: {
      stdin: {
        flags: "--stdin",
        about: "read the new password from the first line of stdin, and one's current one from the second",
        type: "flag",
      },
    },
    examples: ["user password ada", "user password ada --stdin < new-password"],
    async run({ client, out, io, args: [id_or_name = ""], options }) {
      const [password = "", current] = options.stdin
        ? await readLines(io)
        : await asked({ client, io }, id_or_name);
      const body = { password, ...(current ? { current_password: current } : {}) };
      const { json, value } = await client.call("PUT /api/users/:id_or_name/password", {
        params: { id_or_name },
        body,
      });
      out.object(json, value);
    },
  }),
  command({
    name: "delete",
    about: "Delete a user with its tokens and logins",
    args: [WHO],
    options: {},
    examples: ["user delete eve"],
    async run({ client, out, args: [id_or_name = ""] }) {
      const params = { id_or_name };
      const { value: user } = await client.call("GET /api/users/:id_or_name", { params });
      const { json, value } = await client.call("DELETE /api/users/:id_or_name", { params });
      out.object(json, value, user.id);
    },
  }),
];

function switchCommand(name: string, about: string, disabled: boolean): AnyCommand {
  return command({
    name,
    about,
    args: [WHO],
    options: {},
    examples: [`user ${name} eve`],
    async run({ client, out, args: [id_or_name = ""] }) {
      const parts = { params: { id_or_name }, body: { disabled } };
      const { json, value } = await client.call("PUT /api/users/:id_or_name", parts);
      out.object(json, value);
    },
  });
}

async function asked({ client, io }: Pick<Context, "client" | "io">, who: string): Promise<string[]> {
  const ask = new SecretPrompt(io);
  const { value: me } = await client.call("GET /api/auth/whoami");
  const own = me.by === "login" && (me.name === who || me.user_id === who);
  const current = own ? await ask.ask("Current password") : "";
  const fresh = await ask.ask("New password");
  if (await ask.ask("Again") !== fresh) {
    throw usageError("the two passwords are not the same; nothing was changed");
  }
  return [fresh, current];
}
