/* fold.h - folding the coldest calls of the machine's tree: shared by the daemon and BPF */
#ifndef PROFIL_CORE_FOLD_H
#define PROFIL_CORE_FOLD_H

#include <linux/types.h>

/* Arguments of the BPF program tree_fold(). Does nothing unless the slot has this epoch. */
enum profil_fold_op {
	PROFIL_FOLD_HIDE = 1, /* no walk finds the nodes any more */
	PROFIL_FOLD_SHOW,     /* they are found again */
	PROFIL_FOLD_MOVE,     /* adds their samples to other nodes, and frees them */
};

struct profil_fold {
	__u32 slot;
	__u32 epoch;
	__u32 op; /* enum profil_fold_op */
	__u32 n;  /* of the moves in the map fold_moves */
};

struct profil_fold_move {
	__u32 node; /* a node's number */
	__u32 to;   /* MOVE: the node that gets its samples; 0: they are in none any more */
};

#define PROFIL_FOLD_MOVES 4096
struct profil_fold_moves {
	struct profil_fold_move move[PROFIL_FOLD_MOVES];
};

#endif
