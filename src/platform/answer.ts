// Of every call of a platform's own interface; the largest, a hundred updates of Telegram, are some hundred KB.
const ANSWER_BYTES = 16 * 1024 * 1024;

/** The text of an answer. Throws Error when it has more than 16 MiB; what was read until then is dropped. */
export async function answerText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES) throw new Error(`the answer has more than ${ANSWER_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
