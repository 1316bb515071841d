/* The whole runtime as one unit of translation: calls between its parts are inlined, and the object
   that is made of it refers to nothing. */

#include "os.c"

#include "pace.c"

#include "thread_pool.c"

#include "launch.c"

#include "half.c"
