// Writes one answer in the format of each of the four model APIs.
import { IN_TOTAL, OUT_TOTAL, USAGE } from "./usage.mjs";

let seq = 0;
const uid = (p) => `${p}_stub${String(Date.now()).slice(-8)}${String(++seq).padStart(4, "0")}`;

class Sse {
  constructor(res) {
    this.res = res;
    res.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      connection: "keep-alive",
    });
  }
  get gone() {
    return this.res.destroyed || this.res.writableEnded;
  }
  send(data, event) {
    if (this.gone) return;
    this.res.write(
      `${event ? `event: ${event}\n` : ""}data: ${
        typeof data === "string" ? data : JSON.stringify(data)
      }\n\n`,
    );
  }
  end() {
    if (!this.gone) this.res.end();
  }
}

export function json(res, status, body, headers = {}) {
  if (res.destroyed || res.writableEnded) return;
  res.writeHead(status, { "content-type": "application/json", ...headers });
  res.end(JSON.stringify(body));
}

const ERR_TYPES = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};
const GEMINI_STATUS = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};
export function sendError(res, api, status, note) {
  const message = status === 401 ? `stub: invalid API key (${note})` : `stub: ${note}`;
  if (api === "gemini") {
    return json(res, status, {
      error: { code: status, message, status: GEMINI_STATUS[status] ?? "INTERNAL" },
    });
  }
  if (api === "anthropic") {
    return json(res, status, {
      type: "error",
      error: { type: ERR_TYPES[status] ?? "api_error", message },
      request_id: uid("req"),
    }, { "request-id": uid("req") });
  }
  return json(res, status, {
    error: {
      message,
      type: ERR_TYPES[status] ?? "server_error",
      param: null,
      code: status === 401 ? "invalid_api_key" : null,
    },
  });
}

const anthropicUsage = (out) => ({
  input_tokens: USAGE.freshInput,
  cache_creation_input_tokens: USAGE.cacheWrite,
  cache_read_input_tokens: USAGE.cacheRead,
  output_tokens: out,
});
const responsesUsage = {
  input_tokens: IN_TOTAL,
  input_tokens_details: { cached_tokens: USAGE.cacheRead },
  output_tokens: OUT_TOTAL,
  output_tokens_details: { reasoning_tokens: USAGE.thinking },
  total_tokens: IN_TOTAL + OUT_TOTAL,
};
const chatUsage = {
  prompt_tokens: IN_TOTAL,
  completion_tokens: OUT_TOTAL,
  total_tokens: IN_TOTAL + OUT_TOTAL,
  prompt_tokens_details: { cached_tokens: USAGE.cacheRead },
  completion_tokens_details: { reasoning_tokens: USAGE.thinking },
};
const geminiUsage = {
  promptTokenCount: IN_TOTAL,
  cachedContentTokenCount: USAGE.cacheRead,
  candidatesTokenCount: USAGE.text,
  thoughtsTokenCount: USAGE.thinking,
  totalTokenCount: IN_TOTAL + OUT_TOTAL,
};

function sendAnthropic(res, turn, p) {
  const id = uid("msg");
  const base = { id, type: "message", role: "assistant", model: turn.model };
  const call = p.kind === "tool"
    ? { type: "tool_use", id: uid("toolu"), name: p.tool.name, input: p.args }
    : null;
  const textOf = () => p.chunks.join("");
  if (!turn.stream) {
    return json(res, 200, {
      ...base,
      content: call ? [call] : [{ type: "text", text: textOf() }],
      stop_reason: call ? "tool_use" : "end_turn",
      stop_sequence: null,
      usage: anthropicUsage(OUT_TOTAL),
    }, { "request-id": uid("req") });
  }
  const s = new Sse(res);
  s.send({
    type: "message_start",
    message: { ...base, content: [], stop_reason: null, stop_sequence: null, usage: anthropicUsage(1) },
  }, "message_start");
  let index = 0;
  const textBlock = (chunks) => {
    s.send(
      { type: "content_block_start", index, content_block: { type: "text", text: "" } },
      "content_block_start",
    );
    for (const text of chunks) {
      s.send(
        { type: "content_block_delta", index, delta: { type: "text_delta", text } },
        "content_block_delta",
      );
    }
    s.send({ type: "content_block_stop", index }, "content_block_stop");
    index++;
  };
  if (call) {
    if (p.say) textBlock([p.say]);
    s.send(
      { type: "content_block_start", index, content_block: { ...call, input: {} } },
      "content_block_start",
    );
    s.send({
      type: "content_block_delta",
      index,
      delta: { type: "input_json_delta", partial_json: JSON.stringify(p.args) },
    }, "content_block_delta");
    s.send({ type: "content_block_stop", index }, "content_block_stop");
  } else textBlock(p.chunks);
  s.send({
    type: "message_delta",
    delta: { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null },
    usage: anthropicUsage(OUT_TOTAL),
  }, "message_delta");
  s.send({ type: "message_stop" }, "message_stop");
  s.end();
}

function sendResponses(res, turn, p) {
  const id = uid("resp");
  const response = (status, output) => ({
    id,
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    status,
    model: turn.model,
    output,
    error: null,
    incomplete_details: null,
    parallel_tool_calls: false,
    tools: [],
    usage: status === "completed" ? responsesUsage : null,
  });
  let item;
  if (p.kind === "tool") {
    const call_id = uid("call");
    if (p.tool.builtin === "local_shell") {
      item = { id: uid("lsh"), type: "local_shell_call", call_id, status: "completed", action: p.args };
    } else if (p.tool.custom) {
      item = {
        id: uid("ctc"),
        type: "custom_tool_call",
        call_id,
        name: p.tool.name,
        ...(p.tool.namespace ? { namespace: p.tool.namespace } : {}),
        input: p.input ?? JSON.stringify(p.args),
      };
    } else {item = {
        id: uid("fc"),
        type: "function_call",
        call_id,
        name: p.tool.name,
        ...(p.tool.namespace ? { namespace: p.tool.namespace } : {}),
        arguments: JSON.stringify(p.args),
        status: "completed",
      };}
  } else {item = {
      id: uid("msg"),
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: p.chunks.join(""), annotations: [] }],
    };}
  const intro = p.kind === "tool" && p.say
    ? {
      id: uid("msg"),
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: p.say, annotations: [] }],
    }
    : null;
  const output = intro ? [intro, item] : [item];
  if (!turn.stream) {
    return json(res, 200, response("completed", output));
  }
  const s = new Sse(res);
  let n = 0;
  const ev = (type, data) => s.send({ type, sequence_number: n++, ...data }, type);
  ev("response.created", { response: response("in_progress", []) });
  ev("response.in_progress", { response: response("in_progress", []) });
  const message = (it, index, chunks) => {
    ev("response.output_item.added", {
      output_index: index,
      item: { ...it, status: "in_progress", content: [] },
    });
    ev("response.content_part.added", {
      item_id: it.id,
      output_index: index,
      content_index: 0,
      part: { type: "output_text", text: "", annotations: [] },
    });
    for (const delta of chunks) {
      ev("response.output_text.delta", { item_id: it.id, output_index: index, content_index: 0, delta });
    }
    ev("response.output_text.done", {
      item_id: it.id,
      output_index: index,
      content_index: 0,
      text: chunks.join(""),
    });
    ev("response.content_part.done", {
      item_id: it.id,
      output_index: index,
      content_index: 0,
      part: it.content[0],
    });
    ev("response.output_item.done", { output_index: index, item: it });
  };
  if (p.kind === "tool") {
    if (intro) message(intro, 0, [p.say]);
    const index = output.length - 1;
    ev("response.output_item.added", {
      output_index: index,
      item: {
        ...item,
        status: "in_progress",
        ...(item.arguments !== undefined ? { arguments: "" } : {}),
        ...(item.input !== undefined ? { input: "" } : {}),
      },
    });
    if (item.arguments !== undefined) {
      ev("response.function_call_arguments.delta", {
        item_id: item.id,
        output_index: index,
        delta: item.arguments,
      });
      ev("response.function_call_arguments.done", {
        item_id: item.id,
        output_index: index,
        arguments: item.arguments,
      });
    } else if (item.input !== undefined) {
      ev("response.custom_tool_call_input.delta", {
        item_id: item.id,
        output_index: index,
        delta: item.input,
      });
      ev("response.custom_tool_call_input.done", {
        item_id: item.id,
        output_index: index,
        input: item.input,
      });
    }
    ev("response.output_item.done", { output_index: index, item });
  } else message(item, 0, p.chunks);
  ev("response.completed", { response: response("completed", output) });
  s.end();
}

function sendChat(res, turn, p) {
  const id = uid("chatcmpl");
  const created = Math.floor(Date.now() / 1000);
  const call = p.kind === "tool"
    ? {
      id: uid("call"),
      type: "function",
      function: { name: p.tool.name, arguments: JSON.stringify(p.args) },
    }
    : null;
  const finish = call ? "tool_calls" : "stop";
  if (!turn.stream) {
    const message = call
      ? { role: "assistant", content: p.say ?? null, tool_calls: [call] }
      : { role: "assistant", content: p.chunks.join("") };
    return json(res, 200, {
      id,
      object: "chat.completion",
      created,
      model: turn.model,
      choices: [{ index: 0, message, finish_reason: finish, logprobs: null }],
      usage: chatUsage,
    });
  }
  const s = new Sse(res);
  const chunk = (delta, finish_reason = null) =>
    s.send({
      id,
      object: "chat.completion.chunk",
      created,
      model: turn.model,
      choices: [{ index: 0, delta, finish_reason, logprobs: null }],
    });
  chunk({ role: "assistant", content: "" });
  if (call) {
    if (p.say) chunk({ content: p.say });
    chunk({ tool_calls: [{ index: 0, ...call }] });
  } else for (const content of p.chunks) chunk({ content });
  chunk({}, finish);
  if (turn.wantUsage) {
    s.send({
      id,
      object: "chat.completion.chunk",
      created,
      model: turn.model,
      choices: [],
      usage: chatUsage,
    });
  }
  s.send("[DONE]");
  s.end();
}

function sendGemini(res, turn, p, url) {
  const responseId = uid("gem");
  const part = (parts, last) => ({
    candidates: [{ content: { role: "model", parts }, index: 0, ...(last ? { finishReason: "STOP" } : {}) }],
    ...(last ? { usageMetadata: geminiUsage } : {}),
    modelVersion: turn.model,
    responseId,
  });
  const callParts = p.kind === "tool"
    ? [...(p.say ? [{ text: p.say }] : []), {
      functionCall: { name: p.tool.name, args: p.args, id: uid("fc") },
      thoughtSignature: "c3R1Yg==",
    }]
    : null;
  if (!turn.stream) {
    return json(res, 200, part(callParts ?? [{ text: p.chunks.join("") }], true));
  }
  if (url.searchParams.get("alt") !== "sse") {
    return json(res, 200, [part(callParts ?? [{ text: p.chunks.join("") }], true)]);
  }
  const s = new Sse(res);
  if (callParts) s.send(part(callParts, true));
  else {
    for (const text of p.chunks) s.send(part([{ text }], false));
    s.send(part([{ text: "" }], true));
  }
  s.end();
}

export const RENDER = {
  anthropic: sendAnthropic,
  responses: sendResponses,
  chat: sendChat,
  gemini: sendGemini,
};
