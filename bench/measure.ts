/** A line of the result table: a figure and a baseline from the same run. */
export interface Row {
  what: string;
  value: number;
  unit: string;
  /** The baseline in the same unit. */
  bare?: number;
  /** Text that describes `bare`. */
  beside?: string;
  /** The result in words, such as "31 % of it". */
  says?: string;
  /** Bounds of `value`, in `unit`. A row with another goal has `goal` and `met`. */
  min?: number;
  max?: number;
  goal?: string;
  met?: boolean | null;
}

/** Adds the goal as text, and whether the row meets it. */
export function addVerdict(row: Row): Row {
  const { value, unit, min, max } = row;
  if (max !== undefined) return { ...row, goal: `at most ${max} ${unit}`, met: value <= max };
  return min === undefined ? row : { ...row, goal: `at least ${min} ${unit}`, met: value >= min };
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function computeMedian(values: number[]): number {
  return computePercentile(values, 50);
}

/** Returns the value below which `percent` of the values lie. */
export function computePercentile(values: number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * percent / 100))] ?? NaN;
}

/** Rounds to three significant digits. */
export function formatShort(value: number): string {
  return value >= 1_000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** Formats the result table. */
export function formatTable(rows: Row[]): string {
  const head = ["what", "figure", "beside", "says", "goal", ""];
  const lines = rows.map((row) => [
    row.what,
    `${formatShort(row.value)} ${row.unit}`,
    row.bare === undefined ? "-" : `${formatShort(row.bare)} ${row.unit} ${row.beside ?? ""}`,
    row.says ?? "",
    row.goal ?? "",
    (row.met ?? null) === null ? "" : row.met ? "ok" : "MISSED",
  ]);
  const widths = head.map((title, index) =>
    Math.max(title.length, ...lines.map((line) => line[index]?.length ?? 0))
  );
  const print = (cells: string[]) =>
    cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join("  ").trimEnd();
  return [print(head), print(widths.map((width) => "-".repeat(width))), ...lines.map(print)].join("\n");
}

/** Runs `work` repeatedly, first `warm` times without measuring. Returns the ms of each run. */
export async function measureRuns(
  times: number,
  warm: number,
  work: (index: number) => Promise<void>,
): Promise<number[]> {
  const all: number[] = [];
  for (let index = -warm; index < times; index++) {
    const started = performance.now();
    await work(index);
    if (index >= 0) all.push(performance.now() - started);
  }
  return all;
}

/** A separate server process that sends the same bytes for every request. */
export interface BareServer extends AsyncDisposable {
  url: string;
}

/** Starts an empty Deno.serve that responds with `body`. */
export function startBareServer(body: string): Promise<BareServer> {
  return startScript(
    `${buildResponder(body)}
    Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(port) }, respond);`,
    "--no-config",
  );
}

/** Starts the service's own server with an empty handler that responds with `body`. */
export function startBareHandler(body: string): Promise<BareServer> {
  const [connections, listener] = ["connections", "listener"].map((name) =>
    JSON.stringify(new URL(`../src/http/server/${name}.ts`, import.meta.url))
  );
  return startScript(
    `import { Connections } from ${connections};
    import { bindPort } from ${listener};
    ${buildResponder(body)}
    const port = bindPort({ host: "127.0.0.1", port: 0 });
    const limits = { total: 1_000, perAddress: 1_000, proxies: [] };
    new Connections(port, limits, { handle: async () => respond(), onError: console.error, onFull: respond });
    console.log(port.addr.port);`,
    `--config=${new URL("../deno.json", import.meta.url).pathname}`,
  );
}

function buildResponder(body: string): string {
  return `const body = ${JSON.stringify(body)};
    const respond = () => new Response(body, { headers: { "content-type": "application/json" } });`;
}

async function startScript(script: string, config: string): Promise<BareServer> {
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(file, script);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", config, file],
    stdout: "piped",
    stderr: "null",
    stdin: "null",
  }).spawn();
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const port = new TextDecoder().decode(value).trim();
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
      await reader.cancel();
      await Deno.remove(file);
    },
  };
}

let emptyFile: string | null = null;

/** Runs an empty program to its end. */
export async function runBareProgram(): Promise<void> {
  emptyFile ??= await Deno.makeTempFile({ suffix: ".ts" });
  await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-config", emptyFile],
    stdout: "null",
    stderr: "null",
  })
    .output();
}

const CONNECTIONS = 8;
const SECONDS = 2;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Repeats one request on a keep-alive connection. Cheaper than fetch, so that the client does not limit the rate. */
async function talk(url: URL, head: Uint8Array, until: number): Promise<number> {
  const connection = await Deno.connect({ hostname: url.hostname, port: Number(url.port) });
  connection.setNoDelay(true);
  const buffer = new Uint8Array(256 * 1024);
  let answers = 0;
  try {
    while (performance.now() < until) {
      await connection.write(head);
      await readAnswer(connection, buffer);
      answers++;
    }
  } finally {
    connection.close();
  }
  return answers;
}

async function readAnswer(connection: Deno.TcpConn, buffer: Uint8Array): Promise<void> {
  let filled = 0;
  let needed = Infinity;
  while (filled < needed) {
    const read = await connection.read(buffer.subarray(filled));
    if (read === null) throw new Error("the server closed the connection");
    filled += read;
    if (needed !== Infinity) continue;
    const text = decoder.decode(buffer.subarray(0, Math.min(filled, 4_096)));
    const end = text.indexOf("\r\n\r\n");
    if (end === -1) continue;
    if (!text.startsWith("HTTP/1.1 200")) throw new Error(`the server answered ${text.slice(0, 40)}`);
    needed = end + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? NaN);
  }
}

/** Measures the rate of `GET url` per second over several connections. */
export async function measureRate(url: string, token?: string): Promise<number> {
  const target = new URL(url);
  const head = encoder.encode(
    `GET ${target.pathname}${target.search} HTTP/1.1\r\nhost: ${target.host}\r\n` +
      `${token === undefined ? "" : `authorization: Bearer ${token}\r\n`}\r\n`,
  );
  const warmUntil = performance.now() + 500;
  await Promise.all(Array.from({ length: CONNECTIONS }, () => talk(target, head, warmUntil)));
  const started = performance.now();
  const until = started + SECONDS * 1_000;
  const counts = await Promise.all(Array.from({ length: CONNECTIONS }, () => talk(target, head, until)));
  return counts.reduce((sum, count) => sum + count, 0) / ((performance.now() - started) / 1_000);
}
