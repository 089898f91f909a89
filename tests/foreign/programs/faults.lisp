;; SPDX-License-Identifier: Apache-2.0
;; Faults that the runtime handles, threads that its collector stops, a child, and an image of all that.
(print (loop for i below 100000 sum i))
(print (handler-case (labels ((descend (n) (+ 1 (descend n)))) (descend 1))
         (storage-condition () :overflow)))
(print (handler-case (sb-sys:sap-ref-8 (sb-sys:int-sap 8) 0)
         (sb-sys:memory-fault-error () :fault)))
(print (mapcar #'sb-thread:join-thread
               (loop for i below 8
                     collect (let ((i i))
                               (sb-thread:make-thread
                                (lambda () (loop repeat 1000 do (make-list 1000)) i))))))
(gc :full t)
(print (sb-ext:process-exit-code (sb-ext:run-program "/bin/sh" '("-c" "exit 3"))))
(terpri)
(sb-ext:save-lisp-and-die "lisp" :executable t
                          :toplevel (lambda () (print :saved) (terpri) (sb-ext:exit :code 5)))
