const COMMAND = /^[/!\uff0f\uff01]([a-z]+)(?:@\w+)?(?=\s|$)/i;

/** A command as a person typed it: its name in lower case, and the text after it. */
interface TypedCommand {
  name: string;
  rest: string;
}

/**
 * Reads a command such as `/stop`, `!Stop` or `/stop@botname`, also with the wide marks of Chinese keyboards. Returns null for other
 * text.
 */
export function readCommand(text: string): TypedCommand | null {
  const given = text.trim();
  const found = COMMAND.exec(given);
  return found === null
    ? null
    : { name: (found[1] ?? "").toLowerCase(), rest: given.slice(found[0].length).trim() };
}
