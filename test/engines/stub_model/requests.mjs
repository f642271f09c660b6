// Reads the request formats of four model APIs into one form:
// { model, stream, prompt, history[], results[], tools[], jsonSchema }.
// prompt  = newest user text; history = all user texts; results = tool outputs after that text.

// Text that CLIs put in the user role themselves.
const NOISE_TAGS = [
  "system-reminder",
  "environment_context",
  "user_instructions",
  "session_context",
  "env",
  "info-msg",
  "permissions instructions",
  "collaboration_mode",
  "skills_instructions",
  "current_datetime",
  "reminder",
  "sql_tables",
  "user_environment_context",
  "available_skills",
  "turn_aborted",
];
function denoise(text) {
  let out = String(text ?? "");
  for (const tag of NOISE_TAGS) {
    const t = tag.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    out = out.replace(new RegExp(`<${t}[^>]*>[\\s\\S]*?</${t}>`, "g"), "");
  }
  if (/^\s*# AGENTS\.md instructions/.test(out)) return "";
  return out.trim();
}

function flat(content) {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (Array.isArray(content)) {
    return content.map((c) => (typeof c === "string" ? c : c?.text ?? c?.content ?? "")).map(flat).join("\n");
  }
  if (typeof content === "object") {
    return content.text ?? content.output ?? content.content ?? JSON.stringify(content);
  }
  return String(content);
}

function collector() {
  const t = { prompt: "", history: [], results: [] };
  return {
    t,
    user(text) {
      const clean = denoise(text);
      if (!clean) return;
      t.prompt = clean;
      t.history.push(clean);
      t.results = [];
    },
    result(text) {
      t.results.push(flat(text));
    },
  };
}

export function readAnthropic(body) {
  const c = collector();
  for (const m of body.messages ?? []) {
    if (m.role !== "user") continue;
    const blocks = typeof m.content === "string" ? [{ type: "text", text: m.content }] : m.content ?? [];
    for (const b of blocks) if (b.type === "tool_result") c.result(b.content);
    for (const b of blocks) if (b.type === "text") c.user(b.text);
  }
  return {
    ...c.t,
    model: body.model,
    stream: !!body.stream,
    tools: (body.tools ?? []).filter((t) => t.input_schema).map((t) => ({
      name: t.name,
      schema: t.input_schema,
    })),
    jsonSchema: body.output_config?.format?.schema ?? body.output_format?.schema ?? null,
  };
}

export function readResponses(body) {
  const c = collector();
  const items = typeof body.input === "string"
    ? [{ type: "message", role: "user", content: body.input }]
    : body.input ?? [];
  for (const it of items) {
    const type = it.type ?? "message";
    if (type === "message") {
      if (it.role === "user") {
        for (const part of Array.isArray(it.content) ? it.content : [it.content]) c.user(flat(part));
      }
    } else if (/_output$/.test(type)) c.result(it.output ?? it);
  }
  const tools = [];
  const add = (t, namespace) => {
    if (t.type === "namespace") { for (const s of t.tools ?? []) add(s, t.name); }
    else if (t.type === "function") tools.push({ name: t.name, schema: t.parameters, namespace });
    else if (t.type === "custom") {
      tools.push({ name: t.name, custom: true, namespace, description: t.description ?? "" });
    } else if (t.type === "local_shell") tools.push({ name: "local_shell", builtin: "local_shell" });
  };
  // Newer Codex models get their tools as an input item instead of the tools field.
  for (const t of [...(body.tools ?? []), ...items.flatMap((i) => i.tools ?? [])]) add(t);
  const fmt = body.text?.format;
  return {
    ...c.t,
    model: body.model,
    stream: !!body.stream,
    tools,
    jsonSchema: fmt?.type === "json_schema" ? fmt.schema : null,
  };
}

export function readChat(body) {
  const c = collector();
  for (const m of body.messages ?? []) {
    if (m.role === "user") {
      for (const part of Array.isArray(m.content) ? m.content : [m.content]) c.user(flat(part));
    } else if (m.role === "tool") c.result(m.content);
  }
  const rf = body.response_format;
  return {
    ...c.t,
    model: body.model,
    stream: !!body.stream,
    wantUsage: !body.stream || body.stream_options?.include_usage !== false,
    tools: (body.tools ?? []).filter((t) => t.function).map((t) => ({
      name: t.function.name,
      schema: t.function.parameters,
    })),
    jsonSchema: rf?.type === "json_schema" ? rf.json_schema?.schema : null,
  };
}

export function readGemini(body, url) {
  const c = collector();
  for (const m of body.contents ?? []) {
    if (m.role && m.role !== "user" && m.role !== "function") continue;
    for (const p of m.parts ?? []) if (p.functionResponse) c.result(p.functionResponse.response);
    for (const p of m.parts ?? []) if (typeof p.text === "string" && !p.thought) c.user(p.text);
  }
  const [, model, verb] = /models\/([^:/]+):(\w+)/.exec(url.pathname) ?? [];
  const g = body.generationConfig ?? {};
  return {
    ...c.t,
    model,
    stream: /^stream/.test(verb ?? ""),
    tools: (body.tools ?? []).flatMap((t) => t.functionDeclarations ?? []).map((f) => ({
      name: f.name,
      schema: f.parametersJsonSchema ?? f.parameters,
    })),
    jsonSchema: g.responseJsonSchema ?? g.responseSchema ?? null,
  };
}
