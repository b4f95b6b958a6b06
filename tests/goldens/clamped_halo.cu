extern "C" __global__ void __launch_bounds__(16)
kernel(float const *__restrict__ x, int const n, float *__restrict__ y)
{
    __shared__ __align__(16) float x_s[18];
    int const i_inner = threadIdx.x;
    int const i_outer = blockIdx.x;
    int const x_dim_0_inner = threadIdx.x;
    if (x_dim_0_inner + 16 * i_outer <= n) {
        #pragma unroll
        for (int x_dim_0_outer = 0; x_dim_0_outer < 2; ++x_dim_0_outer) {
            if (16 * x_dim_0_outer + x_dim_0_inner + 16 * i_outer >= 1 && 16 * x_dim_0_outer + x_dim_0_inner + 16 * i_outer <= n && 16 * x_dim_0_outer + x_dim_0_inner <= 17)
                x_s[16 * x_dim_0_outer + x_dim_0_inner] = x[16 * i_outer + 16 * x_dim_0_outer + x_dim_0_inner - 1];  // fetch_x, by add_prefetch('x')
        }
    }
    __syncwarp();                                                       // x_s written above, read below, within a warp
    if (16 * i_outer + i_inner < n)
        y[16 * i_outer + i_inner] = x_s[max(i_inner, -16 * i_outer + 1)] + x_s[i_inner + 1] + x_s[min(i_inner + 2, n - 16 * i_outer)];  // insn
}

