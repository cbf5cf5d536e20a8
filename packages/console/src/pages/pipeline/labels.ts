/** Labels as a person writes them: `ticket=OPS-1 team=ads`. */

export interface WrittenLabels {
  /** Null if the text has a fault. */
  readonly labels: Readonly<Record<string, string>> | null;
  readonly fault: string | null;
}

export function readLabels(text: string): WrittenLabels {
  const words = text.split(/[\s,]+/).filter((word) => word !== '');
  const wrong = words.find((word) => !/^[^=]{1,64}=/.test(word));
  if (wrong !== undefined) return { labels: null, fault: `${JSON.stringify(wrong)} has no form name=value` };
  const labels = words.map((word): [string, string] => {
    const at = word.indexOf('=');
    return [word.slice(0, at), word.slice(at + 1)];
  });
  return { labels: Object.fromEntries(labels), fault: null };
}
