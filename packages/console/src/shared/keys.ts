import { useEffect } from 'react';

/** Whether a key press belongs to a field or a dialog, so that it is not a command. */
export function isTyping({ target }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement && (target.type === 'checkbox' || target.type === 'radio')) {
    return target.closest('dialog, [data-own-keys]') !== null;
  }
  return (
    target.isContentEditable || target.closest('input, textarea, select, dialog, [data-own-keys]') !== null
  );
}

/** A page's commands by their letter. */
export function useKeys(commands: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      const command = commands[event.key];
      if (command === undefined) return;
      event.preventDefault();
      command();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
}
