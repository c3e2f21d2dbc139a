/* request.h - handles a client's requests */
#ifndef PROFIL_PROFILD_IPC_REQUEST_H
#define PROFIL_PROFILD_IPC_REQUEST_H

#include "connection.h"

client_handler request_handle;

#endif
