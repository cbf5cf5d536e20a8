/**
 * Lines of Markdown as details of a workflow. The Web UI draws them in a frame that is too short by the margins of the
 * page: an empty paragraph is what it cuts off.
 */
export function toDetails(lines: readonly string[]): string {
  return [...lines, '', '\u00a0'].join('\n');
}
