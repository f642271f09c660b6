import { type AnyCommand, command, type Context } from "../command.ts";
import { usageError } from "../../terminal/exit.ts";
import { findLoginPath, readLogins, updateLogins } from "../../client/login_file.ts";
import { readLines, SecretPrompt } from "../../terminal/prompt.ts";
import { parseUrl } from "../../client/server_address.ts";
import { ServiceError } from "../../../src/domain/error.ts";

interface Login {
  access_token: string;
  refresh_token: string;
  expires_in: number;
}

/** `svc ctl login`: keeps a login in hosts.yaml and uses it from now on (contract 9). */
export const loginCommand: AnyCommand = command({
  name: "login",
  about: "Log in at a service, here or elsewhere, and use it from now on",
  args: ["[url]"],
  options: {
    username: { flags: "--username <name>", about: "who logs in", type: "text", default: "admin" },
    passwordStdin: {
      flags: "--password-stdin",
      about: "read the password from the first line of stdin",
      type: "flag",
    },
  },
  examples: ["login https://svc.example.org --username ada", "login --password-stdin < password"],
  async run({ client, io, args: [given], options, note }) {
    if (io.env.SVC_RUN_ID) throw new ServiceError("forbidden", "Cannot log in from an agent's run");
    const address = given === undefined ? await client.url() : parseUrl(given, "the address");
    const { username = "admin" } = options;
    const password = await readPassword(
      io,
      options.passwordStdin === true,
      `Password of ${username} at ${address}`,
    );
    const body = { username, password };
    const login = await client.transport.post<Login>(address, "/api/auth/login", body);
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
    // The login of before would stay good for a month without anybody knowing of it.
    if (before !== undefined) {
      await client.transport.post(address, "/api/auth/logout", { refresh_token: before.refresh_token })
        .catch(() => {});
    }
    note(`logged in as ${username} at ${address}; kept in ${findLoginPath(io.env)}`);
    if (current !== "" && current !== address) {
      note(`svc ctl talked to ${current} before: svc ctl context use ${current}`);
    }
  },
});

/** `svc ctl logout`: ends the login at the service and forgets it here. */
export const logoutCommand: AnyCommand = command({
  name: "logout",
  about: "End the login that is in use, or the one at an address",
  args: ["[url]"],
  options: {},
  examples: ["logout", "logout https://svc.example.org"],
  async run({ client, io, args: [given], note }) {
    const { current, hosts } = await readLogins(io);
    const address = given === undefined ? current || await client.url() : parseUrl(given, "the address");
    const host = hosts[address];
    if (host === undefined) {
      throw new ServiceError(
        "not_found",
        `Cannot log out at ${address}: there is no login for it; see svc ctl context list`,
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
        ? `logged out at ${address}`
        : `forgot the login at ${address}; the service did not answer, so it stays good there until it expires`,
    );
  },
});

/** `svc ctl whoami` (contract 9). */
export const whoamiCommand: AnyCommand = command({
  name: "whoami",
  about: "Show who calls, and what they may",
  options: {},
  examples: ["whoami", "whoami --json"],
  async run({ client, out }) {
    const { json, value } = await client.call("GET /api/auth/whoami");
    out.object(json, { ...value, server: await client.url() }, value.name);
  },
});

/** `svc ctl console`: the web console, logged in (contract 9). */
export const consoleCommand: AnyCommand = command({
  name: "console",
  about: "Open the console in a browser, logged in as the caller; without one, print its address",
  options: {
    print: { flags: "--print", about: "print the address and open nothing", type: "flag" },
  },
  examples: ["console", "console --print"],
  async run(
    { client, out, io, options, note }: Context<{ print: { flags: string; about: string; type: "flag" } }>,
  ) {
    const { value } = await client.call("POST /api/auth/console", { body: {} });
    // Behind the #: it is sent to no server, and stands in no log.
    const address = `${value.url}/#code=${value.code}`;
    if (options.print || !io.outIsTerminal || !await open(address)) {
      out.object(JSON.stringify({ url: address }), { url: address }, address);
    }
    note(`it is good once, within ${value.expires_in} s`);
  },
});

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

async function readPassword(io: Context["io"], fromStdin: boolean, question: string): Promise<string> {
  const password = fromStdin
    ? (await readLines(io))[0] ?? ""
    : await new SecretPrompt(io, "--password-stdin").ask(question);
  if (password === "") throw usageError("no password was given");
  return password;
}
