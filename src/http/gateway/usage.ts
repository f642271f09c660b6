// Finds the usage in answers of model APIs: messages of Anthropic, responses and chat completions of OpenAI.

/** Tokens so far. null: the answer has not said. */
export interface AnswerUsage {
  input: number | null;
  output: number | null;
  /** Whether the figures are those of the whole answer. */
  isFinal: boolean;
}

/** The figures of an event or of a whole answer. */
interface Report extends AnswerUsage {
  /** The id of the response, for answers of OpenAI's responses. */
  responseId: string | null;
  /** Whether the event only has usage, as a chat completion's last chunk has. */
  isExtra: boolean;
}

type Fields = Record<string, unknown>;

/** Reads the JSON of an event or of a whole answer. Returns null for a text that is not an object. */
export function readReport(json: string): Report | null {
  const value = parse(json);
  if (value === null) return null;
  const type = value.type;
  // Anthropic reports the input in `message`, OpenAI everything in `response`.
  const holder = [value, value.message, value.response].filter(isObject);
  const usage = holder.map((one) => one.usage).find(isObject);
  const response = isObject(value.response) ? value.response : value;
  const isResponse = value.object === "response" || typeof type === "string" && type.startsWith("response.");
  return {
    input: usage === undefined ? null : sumInput(usage),
    output: usage === undefined
      ? null
      : getCount(usage, "output_tokens") ?? getCount(usage, "completion_tokens"),
    isFinal: usage !== undefined && type !== "message_start",
    responseId: isResponse && typeof response.id === "string" ? response.id : null,
    isExtra: usage !== undefined && Array.isArray(value.choices) && value.choices.length === 0,
  };
}

// Anthropic counts cached input apart.
function sumInput(usage: Fields): number | null {
  const parts = ["input_tokens", "prompt_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
    .map((name) => getCount(usage, name))
    .filter((count) => count !== null);
  return parts.length === 0 ? null : parts.reduce((sum, count) => sum + count, 0);
}

function getCount(usage: Fields, name: string): number | null {
  const value = usage[name];
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.round(value) : null;
}

function parse(json: string): Fields | null {
  try {
    const value = JSON.parse(json);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
