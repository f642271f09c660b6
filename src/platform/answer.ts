// The largest real answers, 100 updates of Telegram, have some hundred KB.
const ANSWER_BYTES = 16 * 1024 * 1024;

/** Reads the text of an answer. Throws Error after 16 MiB. */
export async function readAnswerText(response: Response): Promise<string> {
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
