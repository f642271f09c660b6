import { ServiceError } from "../../../src/domain/call/error.ts";
import { findLoginPath, readLogins, refuseInRun, updateLogins } from "../../client/login_file.ts";
import { parseUrl } from "../../client/server_address.ts";
import { usageError } from "../../terminal/exit.ts";
import { readPassword } from "../../terminal/prompt.ts";
import { type AnyCommand, command, option } from "../command.ts";

interface LoginResponse {
  access_token: string;
  refresh_token: string;
  expires_in: number;
}

export const groups: Record<string, AnyCommand> = {
  login: command({
    name: "login",
    about: "Log in to a service and use it for later commands",
    args: ["[url]"],
    options: {
      username: option.text("--username <name>", "user name", { default: "admin" }),
      passwordStdin: option.flag("--password-stdin", "read the password from the first line of stdin"),
    },
    examples: ["login https://svc.example.org --username ada", "login --password-stdin < password"],
    async run({ client, io, args: [given], options, note }) {
      refuseInRun(io, "log in");
      const address = given === undefined ? await client.url() : parseUrl(given, "the address");
      const { username = "admin", passwordStdin = false } = options;
      const password = await readPassword(io, passwordStdin, `Password of ${username} at ${address}`);
      if (password === "") throw usageError("the password must not be empty");
      const body = { username, password };
      const login = await client.transport.post<LoginResponse>(address, "/api/auth/login", body);
      const { current, hosts } = await readLogins(io);
      const before = hosts[address];
      await updateLogins(io, (all) => ({
        current: address,
        hosts: {
          ...all.hosts,
          [address]: {
            username,
            refresh_token: login.refresh_token,
            access_token: login.access_token,
            expires_at: Date.now() + login.expires_in * 1000,
          },
        },
      }));
      // The replaced login would otherwise stay valid for a month, without its owner.
      if (before !== undefined) {
        await client.transport.post(address, "/api/auth/logout", { refresh_token: before.refresh_token })
          .catch(() => {});
      }
      note(`logged in as ${username} at ${address}; stored in ${findLoginPath(io.env)}`);
      if (current !== "" && current !== address) {
        note(`to switch back: svc ctl context use ${current}`);
      }
    },
  }),
  logout: command({
    name: "logout",
    about: "Log out of the selected service, or of the service at an address",
    args: ["[url]"],
    examples: ["logout", "logout https://svc.example.org"],
    async run({ client, io, args: [given], note }) {
      refuseInRun(io, "log out");
      const { current, hosts } = await readLogins(io);
      const address = given === undefined ? current || await client.url() : parseUrl(given, "the address");
      const host = hosts[address];
      if (host === undefined) {
        throw new ServiceError(
          "not_found",
          `Cannot log out of ${address}: you are not logged in. Run \`svc ctl context list\`.`,
        );
      }
      const end = client.transport.post(address, "/api/auth/logout", { refresh_token: host.refresh_token });
      const reached = await end.then(() => true, () => false);
      await updateLogins(io, (all) => {
        const { [address]: _gone, ...rest } = all.hosts;
        return { current: all.current === address ? "" : all.current, hosts: rest };
      });
      note(
        reached
          ? `logged out of ${address}`
          : `deleted the login to ${address} here; the service did not respond, so the login stays valid until it expires`,
      );
    },
  }),
  whoami: command({
    name: "whoami",
    about: "Show the current user and scopes",
    examples: ["whoami", "whoami --json"],
    async run({ client, out }) {
      const { json, value } = await client.call("GET /api/auth/whoami");
      out.object(json, { ...value, server: await client.url() }, value.name);
    },
  }),
  console: command({
    name: "console",
    about: "Open the web console in a browser, logged in",
    options: { print: option.flag("--print", "print the address without opening a browser") },
    examples: ["console", "console --print"],
    async run({ client, out, io, options, note }) {
      const { value } = await client.call("POST /api/auth/console", { body: {} });
      // No browser sends the part after # to a server, so no log has the code.
      const address = `${value.url}/#code=${value.code}`;
      if (options.print || !io.outIsTerminal || !await open(address)) {
        out.object(JSON.stringify({ url: address }), { url: address }, address);
      }
      note(`the address works once, within ${value.expires_in} s`);
    },
  }),
};

async function open(address: string): Promise<boolean> {
  const program = Deno.build.os === "darwin" ? "open" : "xdg-open";
  try {
    const { success } = await new Deno.Command(program, { args: [address], stdout: "null", stderr: "null" })
      .output();
    return success;
  } catch {
    return false;
  }
}
