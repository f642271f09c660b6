/** Whether a chat is a group, by the form of its id; every other one is a person. */
export function isGroup(chat: string): boolean {
  return /^cid[\w+/-]{8,}={0,2}$/.test(chat);
}
