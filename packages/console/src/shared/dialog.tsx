import { CSPProvider } from '@base-ui/react/csp-provider';
import { Dialog as Base } from '@base-ui/react/dialog';
import type { ReactElement, ReactNode } from 'react';
import { Icon } from './icon.tsx';

const shapes = {
  middle:
    'left-1/2 top-[12dvh] w-[min(34rem,calc(100vw-2rem))] -translate-x-1/2 rounded-xl border max-h-[76dvh]',
  side: 'inset-y-0 right-0 w-[min(38rem,100vw)] border-l max-sm:inset-x-0 max-sm:bottom-0 max-sm:top-16 max-sm:w-full max-sm:rounded-t-xl max-sm:border-t',
} as const;

/** A modal part of the page: it holds the focus, Escape closes it, and the focus returns to its former element. */
export function Dialog({ title, onClose, children, shape = 'middle', footer }: DialogProps): ReactElement {
  return (
    <CSPProvider disableStyleElements>
      <Base.Root open onOpenChange={(isOpen) => isOpen || onClose()}>
        <Base.Portal>
          <Base.Backdrop className="fixed inset-0 z-40 bg-sunken/60" />
          <Base.Popup
            className={`fixed z-50 flex flex-col border-line bg-raised shadow-float outline-none ${shapes[shape]}`}
          >
            <header className="flex min-h-12 items-center justify-between gap-3 border-b border-line px-4">
              <Base.Title className="min-w-0 truncate text-base font-semibold">{title}</Base.Title>
              <Base.Close
                aria-label="Close"
                className="grid size-8 shrink-0 place-items-center rounded-md text-muted hover:bg-sunken hover:text-text"
              >
                <Icon name="x" />
              </Base.Close>
            </header>
            <div
              tabIndex={0}
              role="group"
              aria-label={typeof title === 'string' ? title : 'Content'}
              className="scrolls min-h-0 flex-1 p-4 outline-offset-[-2px]"
            >
              {children}
            </div>
            {footer === undefined ? null : (
              <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-4 py-3">
                {footer}
              </footer>
            )}
          </Base.Popup>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  );
}

export interface DialogProps {
  readonly title: ReactNode;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly shape?: keyof typeof shapes;
  readonly footer?: ReactNode;
}
