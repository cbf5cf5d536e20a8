/** The end of paths and addresses. A loop, since a regular expression may look at a row of slashes again and again. */
export function withoutEndSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end--;
  return text.slice(0, end);
}
