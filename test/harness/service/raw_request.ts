import { connect } from "node:net";

/** Sends a request exactly as written, and returns the whole answer. */
export function sendRaw(url: string, lines: string[], body = ""): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `${[...lines, `host: ${hostname}:${port}`, "connection: close"].join("\r\n")}\r\n\r\n${body}`,
      );
    });
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (piece) => text += piece);
    socket.on("error", reject);
    socket.on("close", () => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text }));
  });
}
