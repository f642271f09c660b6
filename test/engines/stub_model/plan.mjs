// Chooses the answer to one request from the [[markers]] in the newest user prompt.
function markers(text) {
  const out = [];
  const re = /\[\[([a-z]+\d*)(?::([\s\S]*?))?\]\]/gi;
  for (let m; (m = re.exec(text));) out.push({ name: m[1].toLowerCase(), arg: m[2] });
  return out;
}

// The text of a request without the markers themselves (so that [[seen:X]] does not find itself).
function bare(v) {
  if (typeof v === "string") return v.replace(/\[\[[\s\S]*?\]\]/g, "");
  return v && typeof v === "object" ? Object.values(v).map(bare).join("\n") : "";
}

// A value that satisfies a JSON schema, well enough for tool arguments and structured answers.
function fill(schema, root = schema, depth = 0) {
  if (!schema || depth > 8) return {};
  if (schema.$ref) {
    const path = schema.$ref.replace(/^#\//, "").split("/");
    return fill(path.reduce((o, k) => o?.[k], root), root, depth + 1);
  }
  if ("const" in schema) return schema.const;
  if (schema.enum?.length) return schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  const alt = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (alt?.length && !schema.type) return fill(alt[0], root, depth + 1);
  const type = String(
    Array.isArray(schema.type) ? schema.type.find((t) => t !== "null") : schema.type ?? "object",
  ).toLowerCase();
  if (type === "string") return "stub";
  if (type === "boolean") return false;
  if (type === "integer" || type === "number") return schema.minimum ?? 1;
  if (type === "null") return null;
  if (type === "array") return schema.minItems ? [fill(schema.items, root, depth + 1)] : [];
  const o = {};
  for (const k of schema.required ?? []) {
    o[k] = fill(schema.properties?.[k] ?? { type: "string" }, root, depth + 1);
  }
  return o;
}

const SHELL_NAMES = [
  /^bash$/i,
  /^run_shell_command$/i,
  /^exec_command$/i,
  /^shell_command$/i,
  /^(.*__)?shell$/i,
  /^local_shell$/i,
  /^exec$/i,
  /bash|shell|terminal|exec/i,
];
const COMMAND_KEYS = ["command", "cmd", "script"];

function shellCall(tools, command) {
  for (const re of SHELL_NAMES) {
    const tool = tools.find((t) =>
      re.test(t.name) && (t.custom || t.builtin || COMMAND_KEYS.some((k) => t.schema?.properties?.[k]))
    );
    if (!tool) continue;
    if (tool.builtin) return { tool, args: { type: "exec", command: ["bash", "-lc", command], env: {} } };
    if (tool.custom) {
      return {
        tool,
        input: `const r = await tools.exec_command({cmd: ${
          JSON.stringify(command)
        }}); text(r.output ?? JSON.stringify(r));`,
      };
    }
    const key = COMMAND_KEYS.find((k) => tool.schema.properties[k]);
    const args = fill(tool.schema);
    const kind = tool.schema.properties[key].type;
    args[key] = String(Array.isArray(kind) ? kind[0] : kind).toLowerCase() === "array"
      ? ["bash", "-lc", command]
      : command;
    return { tool, args };
  }
  return null;
}

function namedCall(tools, arg) {
  const [, name, json] = /^\s*(\S+)\s*([\s\S]*)$/.exec(arg ?? "") ?? [];
  if (!name) return null;
  let given = {};
  if (json) {
    try {
      given = JSON.parse(json);
    } catch { /* keep the filled ones */ }
  }
  const tool = tools.find((t) => t.name === name) ?? tools.find((t) => t.name.endsWith(name)) ??
    tools.find((t) => `${t.namespace ?? ""}${t.name}`.includes(name));
  if (tool) return { tool, args: { ...fill(tool.schema), ...given } };
  // Code mode: the real tools are functions inside one script tool.
  const script = tools.find((t) => t.custom && /\btools\./.test(t.description));
  if (!script) return null;
  return {
    tool: script,
    input: `const n = ALL_TOOLS.map((t) => t.name).find((n) => n.endsWith(${
      JSON.stringify(name)
    })); if (!n) { text("no tool " + ALL_TOOLS.map((t) => t.name).join(",")); } else { const r = await tools[n](${
      JSON.stringify(given)
    }); text(r); }`,
  };
}

const SKILL = /\/[^\s()"\\]*\/input\/skills\/[^\s()"\\]*SKILL\.md/g;

const failures = new Map(); // "prompt|marker" -> how often it already failed

export function plan(turn) {
  const ms = markers(turn.prompt);
  const has = (n) => ms.find((m) => m.name === n);
  const step = turn.results.length;

  for (const m of ms) {
    const e = /^error(\d{3})$/.exec(m.name);
    if (!e) continue;
    const times = m.arg === undefined ? Infinity : Number(m.arg) || 1;
    const key = `${turn.prompt}|${m.name}`;
    const done = failures.get(key) ?? 0;
    if (done < times) {
      failures.set(key, done + 1);
      return { kind: "error", status: Number(e[1]), note: `scripted ${e[1]}` };
    }
  }
  if (turn.jsonSchema && !turn.tools.length) {
    return { kind: "text", chunks: [JSON.stringify(fill(turn.jsonSchema))] };
  }
  if (has("hang")) return { kind: "hang" };

  // Tool steps run in the order of their markers; step n is the answer after n tool results.
  const steps = ms.filter((m) => m.name === "tool" || m.name === "call");
  if (step < steps.length && turn.tools.length) {
    const m = { ...steps[step] };
    // The path of the last skill that the conversation lists: earlier prompts had other paths.
    m.arg = m.arg?.replace("{SKILL.md}", () => JSON.stringify(turn.raw).match(SKILL)?.at(-1) ?? "no-skill");
    const call = m.name === "tool"
      ? shellCall(turn.tools, m.arg ?? "echo hi > out.txt && cat out.txt")
      : namedCall(turn.tools, m.arg);
    if (call) return { kind: "tool", ...call, say: has("say")?.arg };
    return {
      kind: "text",
      chunks: [
        `STUB-NO-TOOL for [[${m.name}]]; offered: ${
          turn.tools.map((t) => (t.namespace ? t.namespace + "/" : "") + t.name).join(",")
        }`,
      ],
    };
  }

  let text = has("text")?.arg ?? "STUB-OK final answer";
  if (steps.length && turn.results.length) {
    text += ` | tool output: ${turn.results[turn.results.length - 1].trim().slice(0, 400)}`;
  }
  if (has("recall")) {
    const ids = turn.history.flatMap((h) => markers(h).filter((m) => m.name === "id").map((m) => m.arg));
    text += ` | recall: ${ids.join(",") || "none"} | user texts: ${turn.history.length}`;
  }
  if (has("seen")) {
    const where = Object.entries(turn.raw).filter(([, v]) => bare(v).includes(has("seen").arg ?? "")).map((
      [k],
    ) => k);
    text += ` | seen in: ${where.join(",") || "nothing"}`;
  }
  return { kind: "text", chunks: split(text) };
}

function split(text) {
  const n = Math.ceil(text.length / 3) || 1;
  return text.length < 6
    ? [text]
    : [text.slice(0, n), text.slice(n, 2 * n), text.slice(2 * n)].filter(Boolean);
}
