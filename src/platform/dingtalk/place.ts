/** Checks whether a chat is a group. Other chats are persons. */
export function isGroup(chat: string): boolean {
  return /^cid[\w+/-]{8,}={0,2}$/.test(chat);
}
