import { type ReactElement, type ReactNode, useState } from 'react';
import { Dialog } from './dialog.tsx';
import { Button, type ButtonProps, fieldClass } from './parts.tsx';

export interface ConfirmQuestion {
  readonly title: string;
  /** The effect, and the part that cannot be undone. */
  readonly about: ReactNode;
  /** The confirming button: `Revoke the key`. */
  readonly confirm: string;
  /** The cancelling button: `Keep the key`. */
  readonly keep: string;
  /** A text that must be typed first, for mistakes with a high price. */
  readonly typed?: string | undefined;
}

export interface ConfirmButtonProps extends Omit<ButtonProps, 'onClick'> {
  readonly question: ConfirmQuestion;
  readonly onConfirm: () => void;
}

/** A button for an action that cannot be undone: it asks first, and names the effect. */
export function ConfirmButton({ question, onConfirm, ...button }: ConfirmButtonProps): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const confirm = (): void => {
    setOpen(false);
    onConfirm();
  };
  return (
    <>
      <Button look="danger" {...button} onClick={() => setOpen(true)} />
      {isOpen ? (
        <ConfirmDialog question={question} onConfirm={confirm} onClose={() => setOpen(false)} />
      ) : null}
    </>
  );
}

interface ConfirmDialogProps {
  readonly question: ConfirmQuestion;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

function ConfirmDialog({
  question: { title, about, confirm, keep, typed },
  onConfirm,
  onClose,
}: ConfirmDialogProps): ReactElement {
  const [text, setText] = useState('');
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{keep}</Button>
          <Button look="danger" disabled={typed !== undefined && text !== typed} onClick={onConfirm}>
            {confirm}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3 text-sm">
        {about}
        {typed === undefined ? null : (
          <label className="flex flex-col gap-1 font-medium">
            Type {typed} to confirm
            <input
              value={text}
              onChange={({ target }) => setText(target.value)}
              className={`${fieldClass} h-9`}
            />
          </label>
        )}
      </div>
    </Dialog>
  );
}
